/** Kubernetes' cost limits for admission expressions. A unit takes well below a tenth of a microsecond here. */

/** Limit for one expression, including the variables that it uses. */
export const CALL_UNITS = 1_000_000;
/** Limit for all expressions of a policy under one binding. */
export const POLICY_UNITS = 10_000_000;
/** Limit for all match conditions of a webhook or policy. */
export const MATCH_UNITS = 2_500_000;
