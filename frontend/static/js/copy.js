// <button data-copy="ID" data-copied="WORD" hidden>: puts an input's value on the clipboard; shown only where the browser lets it.
for (const button of document.querySelectorAll("[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  source.addEventListener("focus", () => source.select());
  if (!navigator.clipboard) continue; // plain http on a LAN: select and copy by hand
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(source.value);
    button.textContent = button.dataset.copied;
  });
}
