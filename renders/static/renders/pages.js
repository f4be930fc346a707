// The pages work without this; it spares a second click and copies a command.
"use strict";

// A form marked data-once is sent once; back in the browser's history it can be sent again.
addEventListener("submit", (event) => {
  if (!event.target.hasAttribute("data-once")) return;
  // Later, or the pressed button would not be part of what is sent.
  setTimeout(() => setSent(event.target, true));
});
addEventListener("pageshow", () => {
  document.querySelectorAll("form[data-once]").forEach((form) => setSent(form, false));
});
function setSent(form, sent) {
  form.querySelectorAll("button").forEach((button) => { button.disabled = sent; });
}

document.querySelectorAll("[data-copy]").forEach((button) => {
  const label = button.textContent;
  const source = document.getElementById(button.dataset.copy);
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.textContent = (await copied(source)) ? "Copied" : "Press Ctrl+C to copy";
    setTimeout(() => { button.textContent = label; }, 3000);
  });
});
async function copied(source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    // No clipboard without https: select it and try the old way.
    getSelection().selectAllChildren(source);
    return document.execCommand("copy");
  }
}
