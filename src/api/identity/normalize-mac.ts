/** Returns the MAC address in the form that records use and in which addresses are compared: lower case, with colons. */
export function normalizeMac(text: string): string {
  return text.toLowerCase().replaceAll('-', ':');
}
