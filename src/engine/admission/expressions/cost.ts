/** How much admission expressions may cost: Kubernetes' figures. A unit is well below a tenth of a microsecond here. */

/** For one expression, with all the variables that it uses. */
export const CALL_UNITS = 1_000_000;
/** For all expressions of a policy under one binding. */
export const POLICY_UNITS = 10_000_000;
/** For all match conditions of a webhook or policy. */
export const MATCH_UNITS = 2_500_000;
