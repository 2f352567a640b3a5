/**
 * Formats ages as kubectl prints them, with two or three significant figures, like HumanDuration of
 * k8s.io/apimachinery.
 */

const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;
const DAY_H = 24;
const YEAR_H = 365 * DAY_H;

export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
  // The clocks of two machines may differ slightly: just below zero is "now", not an error.
  if (!(seconds >= -1)) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 2 * MINUTE_S) return `${seconds}s`;

  const minutes = Math.trunc(seconds / MINUTE_S);
  if (minutes < 10) return pair(minutes, 'm', seconds % MINUTE_S, 's');
  if (minutes < 3 * 60) return `${minutes}m`;

  const hours = Math.trunc(seconds / HOUR_S);
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm');
  if (hours < 2 * DAY_H) return `${hours}h`;

  const days = Math.trunc(hours / DAY_H);
  if (hours < 8 * DAY_H) return pair(days, 'd', hours % DAY_H, 'h');
  if (hours < 2 * YEAR_H) return `${days}d`;

  const years = Math.trunc(days / 365);
  return hours < 8 * YEAR_H ? pair(years, 'y', days % 365, 'd') : `${years}y`;
}

function pair(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${big}${bigUnit}` : `${big}${bigUnit}${small}${smallUnit}`;
}
