"use strict";
// Tooltips from the marks' descriptions, and one system highlighted at a click on the legend.
for (const run of document.querySelectorAll("section.run")) {
  const chosen = new Set();
  const marks = [...run.querySelectorAll("svg.picture [aria-label][role='graphics-symbol']")].filter(
    (mark) => !["axis", "legend", "title"].includes(mark.getAttribute("aria-roledescription"))
  );
  const figures = [...run.querySelectorAll("figure[data-agents]")];
  const known = new Set(figures.flatMap((figure) => JSON.parse(figure.dataset.agents)));
  for (const mark of marks) {
    const name = mark.getAttribute("aria-label").split(" · ")[0];
    mark.dataset.agent = known.has(name) ? name : "";
  }
  const entries = [];
  for (const figure of figures) {
    const names = JSON.parse(figure.dataset.agents);
    figure.querySelectorAll(".role-legend-label text").forEach((text, place) => {
      const entry = text.closest(".role-scope, .role-legend-entry g");
      const name = names[place];
      for (const part of entry.querySelectorAll("text, path, [pointer-events]")) {
        part.style.pointerEvents = "all";
      }
      entry.setAttribute("role", "button");
      entry.setAttribute("tabindex", "0");
      entry.setAttribute("aria-label", "highlight " + name);
      entry.setAttribute("aria-pressed", "false");
      entry.addEventListener("click", () => choose(name));
      entry.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose(name);
      });
      entries.push([entry, name]);
    });
  }
  function choose(name) {
    if (!chosen.delete(name)) chosen.add(name);
    for (const [entry, its] of entries) entry.setAttribute("aria-pressed", chosen.has(its));
    for (const mark of marks) mark.classList.toggle("on", chosen.has(mark.dataset.agent));
    for (const figure of figures) {
      const any = marks.some((m) => figure.contains(m) && chosen.has(m.dataset.agent));
      figure.classList.toggle("chosen", any);
    }
  }
}
const hint = document.createElement("div");
hint.className = "hint";
hint.setAttribute("aria-hidden", "true");
document.body.append(hint);
let shown = null;
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest ? event.target.closest("[data-agent]") : null;
  if (shown && shown !== mark) shown.classList.remove("near");
  shown = mark;
  if (!mark) {
    hint.style.visibility = "hidden";
    return;
  }
  mark.classList.add("near");
  hint.textContent = mark.getAttribute("aria-label");
  const width = hint.offsetWidth, height = hint.offsetHeight;
  const left = Math.min(event.clientX + 14, window.innerWidth - width - 6);
  const above = event.clientY - height - 12;
  hint.style.left = Math.max(6, left) + "px";
  hint.style.top = (above < 4 ? event.clientY + 18 : above) + "px";
  hint.style.visibility = "visible";
});
