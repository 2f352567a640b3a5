import { RUN_STRATEGIES, type VmSpec } from '#api/virtual-machine/schema.ts';
import { forbiddenField, invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';

const EXCLUSIVE =
  'Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead';

const ALLOWED = `must be one of ${RUN_STRATEGIES.join(', ')}`;

/** The messages begin as KubeVirt's. */
export function checkRunStrategy({ running, runStrategy }: VmSpec): FieldError[] {
  const hasStrategy = runStrategy !== undefined && runStrategy !== '';
  if (running !== undefined && hasStrategy) return [forbiddenField('spec.running', EXCLUSIVE)];
  if (running !== undefined) return [];
  if (!hasStrategy) return [requiredValue('spec.runStrategy', `RunStrategy must be specified: ${ALLOWED}`)];
  if ((RUN_STRATEGIES as readonly string[]).includes(runStrategy)) return [];
  return [invalidValue('spec.runStrategy', runStrategy, `Invalid RunStrategy (${runStrategy}): ${ALLOWED}`)];
}

export function runStrategyWarnings({ running }: VmSpec): string[] {
  return running === undefined ? [] : ['spec.running is deprecated, please use spec.runStrategy instead.'];
}
