// A question before an action: what it does, and what it is called.

import { el } from "./dom.js";

// Resolves with the values of the fields, or null when the user does not confirm.
export function confirmAction({ title, text, action, danger = false, fields = [] }) {
  return new Promise((resolve) => {
    const cancel = el("button", { type: "button" }, "Keep it as it is");
    const inputs = fields.map((field) => el("input", { name: field.name, type: field.type, value: field.value,
      min: field.min, max: field.max, placeholder: field.placeholder, required: field.required }));
    const form = el("form", { method: "dialog" }, el("h2", {}, title), el("p", {}, text),
      fields.map((field, at) => field.type === "checkbox"
        ? el("label", { class: "check" }, inputs[at], field.label)
        : el("label", { class: "field" }, field.label, inputs[at])),
      el("div", { class: "row" }, cancel, el("button", { class: danger ? "danger main" : "main", value: "yes" }, action)));
    const dialog = el("dialog", {}, form);
    let values = null;
    form.addEventListener("submit", () => {
      values = Object.fromEntries(fields.map((field, at) => [field.name,
        field.type === "checkbox" ? inputs[at].checked : inputs[at].value]));
    });
    cancel.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => { dialog.remove(); resolve(values); });
    document.body.append(dialog);
    dialog.showModal();
    // the harmless choice has the focus, or the first value to give
    (inputs.find((input) => input.type !== "checkbox") ?? cancel).focus();
  });
}
