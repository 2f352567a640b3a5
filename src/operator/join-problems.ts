/** Limits the length of a message; the log has all problems. */
const MAX_LISTED = 5;

export function joinProblems(problems: readonly string[]): string {
  const more = problems.length - MAX_LISTED;
  return [...problems.slice(0, MAX_LISTED), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}
