/**
 * Units for a fault that was found by throwing: an Error remembers its stack, which takes longer than most functions.
 * Charged where it is caught.
 */
export const THROW_COST = 350;
