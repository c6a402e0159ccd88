// What the theme leaves unnamed or out of reach of the keyboard; it makes some of it late.
const name = () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll("pre > code, .md-typeset__scrollwrap, .md-typeset table.dataframe, .md-typeset p:has(> img)").forEach((part) => {
    if (part.matches("code") || part.scrollWidth > part.clientWidth) part.setAttribute("tabindex", "0");
  });
  document.querySelectorAll(".md-code__nav").forEach((nav, i) => nav.setAttribute("aria-label", `Code ${i + 1}`));
};
window.addEventListener("load", () => [0, 300, 1500].forEach((wait) => setTimeout(name, wait)));
