// The site's search: pages whose title has the words come first, how-tos before others; the changelog and
// contributors' pages come last.
var Scorer = {
  score: ([page, title, , , score]) => {
    const words = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase().match(/[\w-]+/g) ?? [];
    const named = words.length > 0 && words.every((word) => title.toLowerCase().includes(word));
    const first = named ? (page.startsWith("howto/") ? 150 : 100) : 0;
    return score + (/^(changelog$|contributing\/)/.test(page) ? -1000 : first);
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
