/** How strongly a run circles, from 0 to 1. */
export function LoopScore({ score }: { score: number | null | undefined }) {
  if (score === null || score === undefined) return <span className="faint">–</span>;
  const [tone, words] = score >= 0.7 ? ["diff-removed", "circling"] : score >= 0.4 ? ["score-warn", "repeats itself"] : ["", "moving"];
  return (
    <span className={`number ${tone}`} title={words}>
      {score.toFixed(2)}
      <span className="visually-hidden"> ({words})</span>
    </span>
  );
}
