/** What an error says to the user. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
