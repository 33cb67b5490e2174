"""The paper's figures and claims: `python -m paper` draws the ones and checks the others.

The paper is "On Regret with Multiple Best Arms" by Zhu and Nowak (NeurIPS 2020).
"""
