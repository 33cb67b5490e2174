"""The paper's figures and claims: `python -m paper` draws the figures and checks the claims.

The paper is "On Regret with Multiple Best Arms" by Zhu and Nowak (NeurIPS 2020).
"""
