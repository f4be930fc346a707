// Checks a JSON object while one types: says what is wrong, marks its line, and after a refused
// form puts the caret there. The server checks by its own rules and has the last word. Keys do
// what they do in any text area; Tab leaves it.
"use strict";
(() => {
  const SPACE = /[ \t\n\r]*/y;
  const TEXT = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
  const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])/y;
  const WORD = /(?:true|false|null)(?!\w)/y;
  const DEEPEST = 20;

  // The first fault of a text that should hold a JSON object: {at, words}; null if there is none.
  // Browsers tell the place of an error each in their own way, or not at all.
  function findFault(text) {
    let at = 0;
    const take = (pattern) => {
      pattern.lastIndex = at;
      const found = pattern.test(text);
      if (found) at = pattern.lastIndex;
      return found;
    };
    const next = () => (take(SPACE), text[at]);
    const fail = (words) => { throw { at, words }; };
    const string = (words) => {
      if (next() !== '"') fail(at >= text.length ? "The text ends too early." : words);
      if (!take(TEXT)) fail("This text has no closing quote, or a character that needs a backslash.");
    };
    const items = (close, depth, item) => {
      if (depth > DEEPEST) fail("Nested too deeply.");
      at += 1;
      if (next() === close) return void (at += 1);
      for (;;) {
        item();
        if (next() === close) return void (at += 1);
        if (text[at] !== ",") fail(at >= text.length ? `The text ends before a ${close}.` : `A comma or a ${close} is missing here.`);
        const comma = at;
        at += 1;
        if (next() === close) { at = comma; fail(`No comma before ${close}.`); }
      }
    };
    const value = (depth) => {
      const sign = next();
      if (sign === "{") items("}", depth, () => {
        string("A name in double quotes is needed here.");
        if (next() !== ":") fail("A colon is missing here.");
        at += 1;
        value(depth + 1);
      });
      else if (sign === "[") items("]", depth, () => value(depth + 1));
      else if (sign === '"') string();
      else if (!take(NUMBER) && !take(WORD)) fail(at >= text.length ? "The text ends too early." : "A value is needed here: text in double quotes, a number, true, false, null, [ or {.");
    };
    try {
      if (next() === undefined) return null;
      if (text[at] !== "{") fail('A JSON object is needed, for instance {"seed": 7}.');
      value(0);
      if (next() !== undefined) fail("Nothing may follow the object.");
      return null;
    } catch (fault) {
      if (fault.words) return fault;
      throw fault;
    }
  }

  function place(text, at) {
    const before = text.slice(0, at).split("\n");
    return { line: before.length, column: before[before.length - 1].length + 1 };
  }

  function enhance(area) {
    const frame = document.createElement("div");
    const lines = document.createElement("div");
    const words = document.createElement("p");
    frame.className = "json-editor-frame";
    lines.className = "json-editor-lines";
    lines.setAttribute("aria-hidden", "true");
    words.className = "json-editor-words";
    words.id = `${area.id}_check`;
    words.setAttribute("role", "status");
    area.before(frame);
    frame.append(lines, area);
    frame.after(words);
    area.setAttribute("aria-describedby", `${area.getAttribute("aria-describedby") || ""} ${words.id}`.trim());

    let wrong = 0;
    const mark = (line) => {
      wrong = line;
      area.classList.toggle("json-editor-wrong", line > 0);
      area.style.setProperty("--wrong-line", String(line));
      if (line) area.setAttribute("aria-invalid", "true");
      else area.removeAttribute("aria-invalid");
      number();
    };
    const number = () => {
      const count = area.value.split("\n").length;
      const rows = Array.from({ length: count }, (_, index) => {
        const row = document.createElement("span");
        row.textContent = String(index + 1);
        row.classList.toggle("json-editor-wrong", index + 1 === wrong);
        return row;
      });
      lines.replaceChildren(...rows);
      lines.scrollTop = area.scrollTop;
    };
    const check = () => {
      const fault = findFault(area.value);
      const where = fault && place(area.value, fault.at);
      words.textContent = !fault ? (area.value.trim() ? "Valid JSON." : "") : `Line ${where.line}, column ${where.column}: ${fault.words}`;
      mark(fault ? where.line : 0);
      return fault;
    };
    const show = (at) => {
      area.setSelectionRange(at, at);
      const height = parseFloat(getComputedStyle(area).lineHeight);
      area.scrollTop = Math.max(0, (place(area.value, at).line - 3) * height);
    };

    let timer = 0;
    area.addEventListener("input", () => {
      number();
      clearTimeout(timer);
      timer = setTimeout(check, 300);
    });
    area.addEventListener("scroll", () => { lines.scrollTop = area.scrollTop; });
    new ResizeObserver(() => { lines.style.height = `${area.offsetHeight}px`; }).observe(area);

    const first = area.form && area.form.querySelector('[aria-invalid="true"]');
    if (area.getAttribute("aria-invalid") !== "true") return number();
    // The form came back. The server knows a place, or objects to something else than the JSON.
    const { errorLine, errorColumn } = area.dataset;
    let fault = null;
    if (errorLine) {
      const before = area.value.split("\n").slice(0, errorLine - 1);
      fault = { at: before.join("\n").length + (before.length ? 1 : 0) + Number(errorColumn) - 1 };
      mark(Number(errorLine));
    } else {
      fault = check();
      area.setAttribute("aria-invalid", "true");
    }
    if (first === area) area.focus();
    if (fault) show(fault.at);
  }

  function start() {
    document.querySelectorAll("textarea[data-json-editor]").forEach(enhance);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
