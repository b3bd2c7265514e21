"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  all(".controls").forEach((part) => { part.hidden = false; });

  // The timeline: the part of the run that is drawn, as begin and length on an axis of 10,000 units.
  const line = document.getElementById("timeline");
  if (line) {
    const UNITS = 10000, SHORTEST = 2;
    const total = Number(line.dataset.seconds), lanes = all("svg.lane", line), labels = all(".axis span", line);
    let begin = 0, length = UNITS;
    const seconds = (s) => (s >= 100 ? `${s.toFixed(0)} s` : length * total / UNITS < 0.1 ? `${(s * 1000).toFixed(2)} ms` : `${s.toFixed(length < UNITS / 8 ? 3 : 1)} s`);
    const show = (from, long) => {
      length = Math.min(UNITS, Math.max(SHORTEST, long));
      begin = Math.min(UNITS - length, Math.max(0, from));
      lanes.forEach((lane) => lane.setAttribute("viewBox", `${begin} 0 ${length} 20`));
      labels.forEach((label, n) => { label.textContent = seconds((begin + length * n / (labels.length - 1)) * total / UNITS); });
    };
    const zoom = (by, at = begin + length / 2) => show(at - (at - begin) * by, length * by);
    const actions = {
      in: () => zoom(0.5), out: () => zoom(2), left: () => show(begin - length / 4, length),
      right: () => show(begin + length / 4, length), all: () => show(0, UNITS),
    };
    all("[data-zoom]").forEach((button) => button.addEventListener("click", actions[button.dataset.zoom]));
    const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all" };
    line.tabIndex = 0;
    line.addEventListener("keydown", (event) => {
      const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
      if (action) { actions[action](); event.preventDefault(); }
    });
    const at = (event) => {
      const box = lanes[0].getBoundingClientRect();
      return begin + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * length;
    };
    line.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) { zoom(event.deltaY < 0 ? 0.8 : 1.25, at(event)); event.preventDefault(); }
    }, { passive: false });
    line.addEventListener("dblclick", (event) => zoom(0.25, at(event)));
    let from = null;
    line.addEventListener("pointerdown", (event) => { from = event.target.closest("svg.lane") ? at(event) : null; });
    window.addEventListener("pointerup", (event) => {
      if (from !== null && Math.abs(at(event) - from) > length / 50) show(Math.min(from, at(event)), Math.abs(at(event) - from));
      from = null;
    });
  }

  // Filters: by the severity of a finding, and by what a part contains.
  all("section").forEach((section) => {
    const boxes = all("[data-severity]", section).filter((box) => box.tagName === "INPUT"), search = section.querySelector("[data-search]");
    if (!boxes.length && !search) return;
    const parts = all(search ? `details.${search.dataset.search}` : "details.finding", section);
    const filter = () => {
      const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.dataset.severity));
      const words = search ? search.value.toLowerCase() : "";
      parts.forEach((part) => {
        part.hidden = hidden.has(part.dataset.severity) || !part.textContent.replaceAll("\u00a0", " ").toLowerCase().includes(words);
      });
    };
    [...boxes, search].filter(Boolean).forEach((input) => input.addEventListener("input", filter));
  });

  // A link to a part opens it; on paper all parts are open.
  const open = () => {
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const part = id && document.getElementById(id);
    if (part && part.tagName === "DETAILS") { part.open = true; part.scrollIntoView(); }
  };
  window.addEventListener("hashchange", open);
  open();
  window.addEventListener("beforeprint", () => all("details").forEach((part) => { part.open = true; }));
})();
