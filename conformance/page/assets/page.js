"use strict";
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const byId = (id) => document.getElementById(id);
const root = document.documentElement;

/* Colours: as the system, light, dark. */
const THEMES = { "": ["Auto", "as the system"], light: ["Light", "light"], dark: ["Dark", "dark"] };
const showTheme = () => {
  const [word, meaning] = THEMES[root.dataset.theme || ""];
  byId("theme").lastElementChild.textContent = word;
  byId("theme").setAttribute("aria-label", `Colours: ${meaning}`);
};
byId("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(root.dataset.theme || "") + 1) % names.length];
  if (next) root.dataset.theme = next; else delete root.dataset.theme;
  try { localStorage.setItem("conformance-theme", next); } catch (error) { /* no storage */ }
  showTheme();
});
showTheme();

/* Rows of the matrix: open with all areas, or with one. */
const bodies = all("tbody.implementation");
const isOpen = (body) => body.classList.contains("on");
const open = (body, on, area = "") => {
  body.classList.toggle("on", on);
  if (on && area) body.dataset.only = area; else delete body.dataset.only;
  all(".name", body)[0].setAttribute("aria-expanded", String(on));
  all("section.area", body).forEach((section) => section.classList.toggle("off", Boolean(area) && section.dataset.area !== area));
  all("a.cell", body).forEach((cell) => cell.classList.toggle("chosen", on && cell.closest("td").dataset.area === area));
};
bodies.forEach((body) => {
  all(".name", body)[0].addEventListener("click", () => open(body, !isOpen(body) || "only" in body.dataset));
  all("a.cell", body).forEach((cell) => cell.addEventListener("click", (event) => {
    event.preventDefault();
    const area = cell.closest("td").dataset.area;
    open(body, !(isOpen(body) && body.dataset.only === area), area);
  }));
});

/* Links to a requirement open what it lies in. */
const reveal = (id) => {
  const target = id && byId(id);
  const body = target && target.closest("tbody.implementation");
  if (!body) return;
  if (body.hidden || target.hidden) byId("filters").reset();
  const section = target.closest("section.area");
  open(body, true, section ? section.dataset.area : "");
  const details = target.querySelector(":scope > details");
  if (details) details.open = true;
  target.scrollIntoView({ block: "start" });
  const focus = details ? details.querySelector("summary") : body.querySelector(".name");
  focus.focus({ preventScroll: true });
};
const revealHash = () => reveal(decodeURIComponent(location.hash.slice(1)));
addEventListener("hashchange", revealHash);
all("a[href^='#']:not(.cell)").forEach((link) => link.addEventListener("click", () => {
  if (link.hash === location.hash) revealHash();
}));

/* Filters. */
const filters = byId("filters");
const texts = new Map();
const textOf = (item, name) => {
  if (!texts.has(item)) texts.set(item, `${name} ${item.textContent}`.toLowerCase());
  return texts.get(item);
};
const OPENED_AT_MOST = 600; /* results: beyond that a list is no answer */
let opened = [];
const filter = () => {
  const wanted = { name: byId("implementation").value, area: byId("area").value, outcome: byId("outcome").value, dtype: (byId("dtype") || { value: "" }).value };
  const words = byId("text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const narrow = Boolean(words.length || wanted.outcome || wanted.dtype);
  const active = narrow || Boolean(wanted.name || wanted.area);
  const matching = [];
  let total = 0;
  opened.forEach((body) => open(body, false));
  opened = [];
  bodies.forEach((body) => {
    const name = body.dataset.name;
    let found = 0;
    all(".item", body).forEach((item) => {
      const fits = (!wanted.name || name === wanted.name)
        && (!wanted.area || item.closest(".area").dataset.area === wanted.area)
        && (!wanted.dtype || (item.dataset.dtypes || "").split(" ").includes(wanted.dtype))
        && (!wanted.outcome || item.classList.contains(wanted.outcome))
        && words.every((word) => textOf(item, name).includes(word));
      item.hidden = !fits;
      found += fits;
      total += 1;
    });
    all("section.area", body).forEach((section) => { section.hidden = !section.querySelector(".item:not([hidden])"); });
    body.hidden = wanted.name ? name !== wanted.name : active && !found;
    if (found) matching.push([body, found]);
  });
  const sum = matching.reduce((before, [, found]) => before + found, 0);
  if ((narrow || wanted.name) && sum <= OPENED_AT_MOST) opened = matching.map(([body]) => body);
  opened.forEach((body) => open(body, true, wanted.area));
  all("[data-area]").filter((cell) => cell.matches("th, td")).forEach((cell) => {
    cell.hidden = Boolean(wanted.area) && cell.dataset.area !== wanted.area;
  });
  all(".card, .grid tbody tr").forEach((row) => { row.hidden = Boolean(wanted.name) && row.dataset.name !== wanted.name; });
  byId("shown").textContent = active ? `${sum} of ${total} results` : "";
  document.querySelector(".nothing").hidden = sum > 0;
};
let waiting = 0;
filters.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 80); });
filters.addEventListener("reset", () => { queueMicrotask(() => { clearTimeout(waiting); setTimeout(filter, 0); }); });
filters.addEventListener("submit", (event) => event.preventDefault());

/* Escape closes the innermost thing that is open, and goes back to what opened it. */
addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const at = document.activeElement;
  const details = at.closest("details[open]");
  const body = at.closest("tbody.on");
  if (details) {
    details.open = false;
    details.querySelector("summary").focus();
  } else if (body) {
    open(body, false);
    body.querySelector(".name").focus();
  }
});

/* Commands can be copied. */
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const code = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch (error) {
    getSelection().selectAllChildren(code); /* no clipboard for pages from files: at least it is selected */
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});

/* Pictures are drawn when they come into view; paper gets the unexpected failures opened. */
document.addEventListener("toggle", (event) => {
  if (event.target.open) all(".picture", event.target).forEach(drawPicture);
}, true);
const PRINTED = 40;
let restore = [];
addEventListener("beforeprint", () => {
  restore = [];
  all(".item.unexpected > details").slice(0, PRINTED).forEach((details) => {
    const body = details.closest("tbody.implementation");
    if (!isOpen(body)) { restore.push(() => open(body, false)); open(body, true); }
    if (!details.open) { restore.push(() => { details.open = false; }); details.open = true; }
    all(".picture", details).forEach(drawPicture);
  });
});
addEventListener("afterprint", () => { restore.forEach((undo) => undo()); restore = []; });
addEventListener("load", revealHash);
