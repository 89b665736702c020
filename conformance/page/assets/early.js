/* Before the first paint: whether there is a script at all, and the colours chosen last time. */
document.documentElement.classList.add("script");
try {
  const chosen = localStorage.getItem("conformance-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch (error) { /* a page from a file may have no storage */ }
