// Opened from a folder, the site has no search: browsers let no page read its index from there.
if (location.protocol === "file:") {
  const note = (place) => {
    const words = document.createElement("small");
    words.className = "served";
    words.append("To search, serve this folder: ",
      Object.assign(document.createElement("code"), { textContent: "python -m http.server -d site" }));
    place?.append(words);
  };
  document.querySelector('[for="__search"]')?.remove();
  note(document.querySelector(".md-header__inner"));
  note(document.querySelector(".md-footer-meta__inner"));
}
