// Taking back the last answers: one on cards, those of a page on pages. Loaded once the first question is up.

let pages = 0; // taken back, so that two of one class stay apart
let told = null; // of the last answers, until the next one or a break

/** `inside` is what the queue shares with this. */
export async function takeBack(screen, queue, inside) {
  const { post, say, send, groups, limit, recovered, failed } = inside;
  try {
    await send();
    const before = groups.read();
    const last = before.pop() ?? [];
    const count = screen.view.one_class ? Math.min(limit, Math.max(1, last.length)) : 1;
    const { undone } = await post(screen.main.dataset.undoUrl, { count });
    groups.write([...before, last.slice(0, Math.max(0, last.length - undone.length))]);
    recovered();
    await restore(screen, queue, inside, undone);
  } catch (error) {
    if (error.status === 409) {
      queue.undoable = 0;
      screen.remark(error.message);
    } else {
      failed(error);
      screen.remark(say("undo_offline"));
    }
  }
}

async function restore(screen, queue, { say, settled, decode }, undone) {
  pages += 1;
  queue.answered = Math.max(0, queue.answered - undone.length);
  queue.waiting = (queue.waiting ?? 0) + undone.length;
  queue.undoable = Math.max(0, queue.undoable - undone.length);
  // A page comes back with its marks; what cards showed is open again.
  const before = screen.view.one_class ? ({ value }) => ({ value, page: pages }) : () => ({});
  const items = undone.map((one) => ({ ...one.question, ...before(one), ready: false }));
  for (const item of items) settled.delete(item.id);
  queue.ahead.unshift(...items, ...screen.view.drop());
  await Promise.all(items.map(decode));
  tellUntilNext(undone.length > 1 ? say("page_undone") : say("undone", { answer: say(undone[0].value) }), screen, queue);
}

/** Says something that is over with the next answer or break. The screen's first load has no room for this. */
function tellUntilNext(text, screen, queue) {
  const isFirst = told === null;
  told = text;
  screen.remark(text);
  if (!isFirst) return;
  const { settle } = queue;
  const { lock } = screen;
  const goOn = () => { if (told && screen.find("remark").textContent === told) screen.remark(""); told = ""; };
  queue.settle = (...given) => { goOn(); settle(...given); };
  screen.lock = (name) => { if (name !== null) goOn(); lock(name); };
}
