// Practice cards: a few pictures with feedback before the first questions. Loaded only where there are some.

const LATER = ["yes", "no"]; // answers that can be right

/** Show the cards one after the other. `make` makes a card view over what stands in for the queue. */
export async function practise(screen, cards, { words, post, make }) {
  const { main, find } = screen;
  const { say } = words;
  const { mode } = main.dataset;
  const blank = find("picture"); // which the view of the questions knows
  const inside = { ahead: [], undoing: false, isScarce: false, refill() {}, settle: (given) => inside.onAnswer(given[0].value) };

  /** Gives whether to go on. */
  const ask = (title, detail) => new Promise((resolve) => {
    find("practice-title").textContent = title;
    find("practice-detail").textContent = detail;
    screen.lock("practice");
    find("practice-next").onclick = () => resolve(true);
    find("practice-skip").onclick = () => resolve(false);
    find("practice-next").focus();
  });

  async function show(card, number) {
    const image = new Image();
    image.draggable = false;
    image.src = card.image_url;
    await image.decode();
    const answered = new Promise((resolve) => { inside.onAnswer = resolve; });
    inside.ahead = [{ ...card, id: `practice-${number}`, image, ready: true }];
    screen.lock(null);
    screen.view.show();
    const value = await answered;
    const verdict = !LATER.includes(value) ? "practice_unsure" : value === card.right ? "practice_right" : "practice_wrong";
    return ask(say(verdict), say("practice_shows", { name: card.shows }));
  }

  main.dataset.practising = "";
  main.dataset.mode = "card";
  screen.view = make(inside);
  try {
    let goesOn = await ask(say("practice", { count: cards.length }), say("practice_detail"));
    for (let number = 0; goesOn && number < cards.length; number++) goesOn = await show(cards[number], number);
    post(main.dataset.practisedUrl, {}).catch(() => {}); // else they come once more
  } finally {
    screen.view.drop();
    find("picture").replaceWith(blank);
    delete main.dataset.practising;
    delete main.dataset.shown;
    main.dataset.mode = mode;
    screen.lock(null);
  }
}
