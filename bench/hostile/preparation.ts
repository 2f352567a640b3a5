/** The name of the attacker's job that creates the objects which attacks by reads need. */
export const PREPARATION = 'preparation';
