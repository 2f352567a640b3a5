/** So that messages stay readable; the log has all. */
const MAX_TOLD = 5;

export function toldOf(problems: readonly string[]): string {
  const more = problems.length - MAX_TOLD;
  return [...problems.slice(0, MAX_TOLD), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}
