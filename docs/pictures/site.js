// What the theme leaves unnamed or out of reach of the keyboard; it makes some of it late.
const name = () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll("pre > code").forEach((code) => code.setAttribute("tabindex", "0"));
  document.querySelectorAll(".md-code__nav").forEach((nav, i) => nav.setAttribute("aria-label", `Code ${i + 1}`));
};
window.addEventListener("load", () => [0, 300, 1500].forEach((wait) => setTimeout(name, wait)));
