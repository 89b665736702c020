/* The picture of a failure: who sees whom, what was expected, what came, and how far it is beyond the budget. One row of cells is a
   query in all four. */
const SVG = "http://www.w3.org/2000/svg";
const make = (name, attributes, ...children) => {
  const element = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  element.append(...children);
  return element;
};
const numbers = (text) => (text || "").split(" ").filter(Boolean).map(Number);
const cells = (text) => text.split(";").map((row) => row.split(" ").map((word) => (/inf/.test(word) ? (word[0] === "-" ? -Infinity : Infinity) : Number(word))));
const brief = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))).replace("-", "−") : Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞");
const span = (starts, i, end) => {
  if (starts.length === end) return String(starts[i]);
  const last = (i + 1 < starts.length ? starts[i + 1] : end) - 1;
  return last > starts[i] ? `${starts[i]}–${last}` : String(starts[i]);
};
let hatches = 0;

function drawPicture(box) {
  if (box.dataset.drawn) return;
  box.dataset.drawn = "yes";
  const data = box.dataset;
  const rows = numbers(data.rows), columns = numbers(data.columns), keys = numbers(data.keys);
  const [height, width] = numbers(data.size);
  const got = cells(data.got), want = cells(data.want), r = cells(data.r);
  const visible = (data.visible || "").split(";");
  const blind = rows.map((_, i) => Boolean(data.visible) && !/[#+]/.test(visible[i]));
  const most = (values) => Math.max(...values.flat().filter(Number.isFinite).map(Math.abs), 0);
  const largest = most(want) || most(got) || 1;
  const worst = Math.max(...r.flat().filter((x) => !Number.isNaN(x)));
  const finite = Math.max(...r.flat().filter(Number.isFinite), 10);
  const written = rows.length <= 8 && columns.length <= 5;
  const side = Math.max(6, Math.min(20, Math.floor(190 / Math.max(rows.length, columns.length, keys.length))));
  const rowName = (i) => `row ${span(rows, i, height)}`;
  const worstAt = r.flat().indexOf(worst);

  const panel = (caption, count, ends, wide, paint) => {
    const w = wide ? 52 : side, h = wide || written ? 22 : side;
    const left = 22, top = 4, total = [left + count * w + 3, top + rows.length * h + 17];
    const id = `hatch${hatches += 1}`;
    const hatch = make("pattern", { id, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      make("line", { y2: 5, stroke: "currentColor", "stroke-width": 1.4, opacity: 0.65 }));
    const svg = make("svg", { width: total[0], height: total[1], viewBox: `0 0 ${total[0]} ${total[1]}`, role: "img", "aria-label": caption },
      make("defs", {}, hatch));
    rows.forEach((_, i) => {
      for (let j = 0; j < count; j += 1) {
        const at = { x: left + j * w, y: top + i * h, width: w - (w > 7 ? 1 : 0.4), height: h - (h > 7 ? 1 : 0.4) };
        const { fill, opacity, title, text, outlined, hatched, dot, light } = paint(i, j);
        const tip = make("title", {}, title);
        svg.append(make("rect", { ...at, class: "ground" }), make("rect", { ...at, fill, "fill-opacity": opacity, ...(outlined ? { class: "worst" } : {}) }, tip));
        if (hatched) svg.append(make("rect", { ...at, fill: `url(#${id})`, "pointer-events": "none" }));
        if (dot && !wide && side > 8) svg.append(make("circle", { cx: at.x + at.width / 2, cy: at.y + at.height / 2, r: side / 8, class: "dot" }));
        if (wide && text) svg.append(make("text", { x: at.x + w / 2, y: at.y + 15, "text-anchor": "middle", class: light ? "value light" : "value" }, text));
      }
      if (i === 0 || i === rows.length - 1) {
        svg.append(make("text", { x: left - 5, y: top + i * h + h / 2 + 4, "text-anchor": "end" }, String(rows[i])));
      }
    });
    const bottom = top + rows.length * h + 13;
    [0, ends.length - 1].filter((j, n, both) => both.indexOf(j) === n).forEach((j) => {
      svg.append(make("text", { x: left + j * w + w / 2, y: bottom, "text-anchor": "middle" }, String(ends[j])));
    });
    const figure = document.createElement("figure");
    const title = document.createElement("figcaption");
    title.textContent = caption;
    figure.append(title, svg);
    return figure;
  };

  const value = (matrix, what) => (i, j) => {
    const v = matrix[i][j];
    return {
      fill: v < 0 ? "var(--negative)" : "var(--positive)",
      opacity: Number.isFinite(v) ? (written ? 0.6 : 0.92) * Math.min(Math.abs(v) / largest, 1) : 0,
      hatched: !Number.isFinite(v) || blind[i],
      text: brief(v),
      title: `${rowName(i)}, column ${span(columns, j, width)}: ${what} ${brief(v)}${blind[i] ? "; a fully masked row" : ""}`,
    };
  };
  const error = (i, j) => {
    const x = r[i][j];
    const beyond = x > 1;
    const strength = beyond ? 0.4 + 0.6 * (x === Infinity ? 1 : Math.log10(x) / Math.log10(finite)) : 0.06 + 0.3 * (x || 0);
    return {
      fill: beyond ? "var(--bad)" : "var(--c1)",
      opacity: Number.isNaN(x) ? 0 : Math.min(strength, 1),
      hatched: Number.isNaN(x),
      dot: beyond,
      outlined: i * columns.length + j === worstAt,
      light: beyond,
      text: Number.isNaN(x) ? "" : brief(x),
      title: `${rowName(i)}, column ${span(columns, j, width)}: r = ${brief(x)}, got ${brief(got[i][j])}, expected ${brief(want[i][j])}`,
    };
  };
  const mask = (i, j) => {
    const state = visible[i][j];
    return {
      fill: "currentColor",
      opacity: { "#": 0.62, "+": 0.3, ".": 0 }[state],
      title: `${rowName(i)}, key ${keys[j]}: ${{ "#": "visible", "+": "partly visible", ".": "hidden" }[state]}`,
    };
  };
  const panels = document.createElement("div");
  panels.className = "panels";
  if (keys.length) panels.append(panel("visible keys", keys.length, keys, false, mask));
  panels.append(
    panel("expected", columns.length, columns, written, value(want, "expected")),
    panel("got", columns.length, columns, written, value(got, "got")),
    panel("error ÷ budget", columns.length, columns, written, error),
  );
  const legend = document.createElement("p");
  legend.className = "key";
  const cut = most(got) > largest ? `; beyond that, up to ±${brief(most(got))}, colours stay` : "";
  const notes = [`Values from −${brief(largest)} (orange) to ${brief(largest)} (blue)${cut}. Red${written ? "" : " with a dot"}: beyond the budget; outlined: the worst.`];
  if (blind.some(Boolean)) notes.push("Hatched rows are fully masked.");
  if ([...got, ...want].flat().some((v) => !Number.isFinite(v))) notes.push("Hatched values are NaN or infinite.");
  if (r.flat().some(Number.isNaN)) notes.push("Hatched errors are not judged.");
  legend.textContent = notes.join(" ");
  box.append(panels, legend);
}
