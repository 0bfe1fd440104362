// Practice cards: a few pictures with feedback before the first questions. Loaded only where there are some.

const RIGHT = ["yes", "no"]; // answers that can be right

/** Show the cards one after the other, as the view of real ones does over what stands in for the queue. */
export async function practise(screen, words, { post }, load) {
  const cards = JSON.parse(document.querySelector("[data-practice-cards]").textContent);
  const [{ makeCard }] = await load("card");
  const { main, find, view } = screen;
  const { say } = words;
  const { mode } = main.dataset;
  const blank = find("picture"); // which the view of the questions knows
  const inside = { ahead: [], undoing: false, isScarce: false, refill() {}, settle: (given) => inside.onAnswer(given[0].value) };

  /** Gives whether to go on. With `picture` it stands above what is told of it. */
  const ask = (title, detail, picture = null) => new Promise((resolve) => {
    find("practice-title").textContent = title;
    find("practice-detail").textContent = detail;
    screen.lock("practice");
    main.toggleAttribute("data-told", picture !== null);
    if (picture) picture.hidden = false;
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
    find("progress").textContent = say("practice_card", { number: number + 1, all: cards.length });
    screen.view.show();
    const value = await answered;
    const verdict = !RIGHT.includes(value) ? "practice_unsure" : value === card.right ? "practice_right" : "practice_wrong";
    return ask(say(verdict), say("practice_shows", { name: card.shows }), image);
  }

  find("take-over").addEventListener("click", () => "practising" in main.dataset && location.reload());
  main.dataset.practising = "";
  main.dataset.mode = "card";
  screen.view = makeCard(screen, inside, words, () => load("gestures"));
  try {
    let goesOn = await ask(say("practice", { count: cards.length }), say("practice_detail"));
    for (let number = 0; goesOn && number < cards.length; number++) goesOn = await show(cards[number], number);
    post(main.dataset.practisedUrl, {}).catch(() => {}); // else they come once more
  } finally {
    screen.view.drop();
    find("picture").replaceWith(blank);
    find("progress").textContent = "";
    delete main.dataset.practising;
    delete main.dataset.told;
    delete main.dataset.shown;
    main.dataset.mode = mode;
    screen.view = view;
    screen.lock(null);
  }
}
