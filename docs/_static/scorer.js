// Which of the pages that a search finds come first: Sphinx's own weights, and among equals those that teach.
var Scorer = {
  score: ([page, , , , score]) => {
    const parts = { tutorials: 2, "how-to": 1, project: -2 };
    return score + (parts[page.split("/")[0]] ?? 0);
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
