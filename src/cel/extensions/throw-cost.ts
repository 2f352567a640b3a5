/**
 * Units for a fault that was found by throwing: creating an Error captures its stack, which takes longer than most
 * functions. Charged where the error is caught.
 */
export const THROW_COST = 350;
