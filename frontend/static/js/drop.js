// Files that are dropped on a form are taken as if they were chosen in its field; what is chosen is sent at once.
//
//   <form data-drop data-refusal="SENTENCE">...<input type="file" multiple>...</form>
//
// Without this script the field and the button do the same. What is too much for the server is said here.

const MOST_FILES = 64; // as app/registry/inference/limits.py
const MOST_BYTES = 64 * 1024 * 1024;

for (const form of document.querySelectorAll("[data-drop]")) {
  const field = form.querySelector("input[type=file]");

  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    form.dataset.over = "";
  });
  form.addEventListener("dragleave", (event) => {
    if (!form.contains(event.relatedTarget)) delete form.dataset.over;
  });
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    delete form.dataset.over;
    if (!event.dataTransfer.files.length) return;
    field.files = event.dataTransfer.files;
    field.dispatchEvent(new Event("change"));
  });
  field.addEventListener("change", () => {
    const files = [...field.files];
    const size = files.reduce((sum, file) => sum + file.size, 0);
    field.setCustomValidity(files.length > MOST_FILES || size > MOST_BYTES ? form.dataset.refusal : "");
    if (files.length) form.requestSubmit();
  });
}
