import "./meter.css";

type MeterProps = {
  label: string;
  used: number;
  limit?: number | null | undefined;
  /** Formats a number of this budget. */
  format: (value: number) => string;
  /** Shows the used part only. */
  brief?: boolean;
};

/** How much of a budget is used. */
export function Meter({ label, used, limit, format, brief }: MeterProps) {
  if (limit === null || limit === undefined) {
    return (
      <div className="meter">
        <div className="meter-words">
          <span>{label}</span>
          <span className="number muted">{format(used)}, no limit</span>
        </div>
      </div>
    );
  }
  const share = limit === 0 ? 1 : Math.min(1, used / limit);
  const tone = share >= 0.95 ? "bad" : share >= 0.8 ? "warn" : "calm";
  return (
    <div className="meter">
      <div className="meter-words">
        <span>{label}</span>
        <span className="number muted">
          {brief ? format(used) : `${format(used)} of ${format(limit)}`}
        </span>
      </div>
      <div
        className={`meter-bar ${tone}`}
        role="meter"
        aria-label={`${label}: ${format(used)} of ${format(limit)}`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
      >
        <span style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  );
}
