// One tab per person and campaign: the one opened last has it, until another takes it over.

/** Calls onLost() when another tab takes over. Gives a function that takes it back. */
export function onlyTab(name, onLost) {
  const me = Math.random();
  let since = Date.now();
  const channel = new BroadcastChannel(name);
  const claim = () => channel.postMessage({ since, me });
  channel.onmessage = ({ data }) => {
    if (data.since > since || (data.since === since && data.me > me)) onLost();
    else claim(); // an older tab that woke up
  };
  claim();
  return () => {
    since = Date.now();
    claim();
  };
}
