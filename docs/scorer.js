// The site's search: pages whose title has the words come first, the changelog and contributors' pages last.
var Scorer = {
  score: ([page, title, , , score]) => {
    const words = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase().match(/[\w-]+/g) ?? [];
    const named = words.length > 0 && words.every((word) => title.toLowerCase().includes(word));
    return score + (/^(changelog$|contributing\/)/.test(page) ? -1000 : named ? 100 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
