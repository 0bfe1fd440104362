// On the page of one picture: arrows lead to the ones beside it, Escape back to where it was opened.
addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const link = document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
  if (link) location.assign(link.href);
});
