// <button data-copy="ID" hidden>: copies the value of an input. Without a clipboard (plain http) the button stays hidden.
for (const button of document.querySelectorAll("[data-copy]")) {
  const input = document.getElementById(button.dataset.copy);
  input.addEventListener("focus", () => input.select());
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(input.value);
    button.textContent = "Copied";
  });
}
