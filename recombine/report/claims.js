// The list of claims: search and filters, the first rows until more are requested. Links with data-verdict set the filter.

const FIRST = 12;

function claimList(form) {
  const rows = [...document.querySelectorAll(".claim-list tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const keys = ["verdict", "study", "paper"];
  let all = rows.length <= FIRST;

  function apply() {
    const words = find("filter-text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = keys.map((key) => [key, find(`filter-${key}`).value]).filter(([, value]) => value);
    const fits = (row, i) => wanted.every(([key, value]) => row.dataset[key] === value) && words.every((word) => texts[i].includes(word));
    const found = rows.filter(fits), shown = all ? found : found.slice(0, FIRST);
    rows.forEach((row) => { row.hidden = !shown.includes(row); });
    const every = found.length === rows.length ? `${rows.length} claims` : `${found.length} of ${rows.length} claims`;
    find("filter-count").textContent = shown.length < found.length ? `${every}, the first ${shown.length} shown` : every;
    find("show-all").hidden = shown.length === found.length;
    find("show-all").textContent = `Show all ${found.length}`;
    measureOverflow();
  }

  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  find("show-all").addEventListener("click", () => { all = true; apply(); });
  document.querySelectorAll("a[data-verdict]").forEach((link) => link.addEventListener("click", () => {
    form.reset();
    find("filter-verdict").value = link.dataset.verdict;
    apply();
  }));
  apply();
}

if (find("filter")) claimList(find("filter"));

/** Whoever comes for one claim finds its parts open. */
function openTarget() {
  const row = location.hash.startsWith("#claim-") && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const fold = row && row.nextElementSibling && row.nextElementSibling.querySelector("details");
  if (fold && row.nextElementSibling.classList.contains("more")) fold.open = true;
}
openTarget();
addEventListener("hashchange", openTarget);
