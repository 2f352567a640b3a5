/** Validates probes and lifecycle hooks. */
import type { Container } from '#engine/registry/kinds/pod-spec/container.ts';
import { checkNotNegative, checkOneSource, checkPort, checkPortOrName } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';

type Probe = NonNullable<Container['livenessProbe']>;
type Hook = NonNullable<NonNullable<Container['lifecycle']>['preStop']>;
type Handler = Hook & Pick<Probe, 'grpc'>;

/** Checks the probes and hooks of containers that keep running. */
export function checkHooks(field: string, container: Container): FieldError[] {
  const { lifecycle, livenessProbe, readinessProbe, startupProbe } = container;
  return [
    ...checkHandler(`${field}.lifecycle.postStart`, lifecycle?.postStart),
    ...checkHandler(`${field}.lifecycle.preStop`, lifecycle?.preStop),
    ...checkProbe(`${field}.livenessProbe`, livenessProbe),
    ...checkOneSuccess(`${field}.livenessProbe`, livenessProbe),
    ...checkProbe(`${field}.readinessProbe`, readinessProbe),
    ...checkProbe(`${field}.startupProbe`, startupProbe),
    ...checkOneSuccess(`${field}.startupProbe`, startupProbe),
  ];
}

/** Rejects probes and hooks of init containers, which must end before the others start. */
export function forbidHooks(field: string, container: Container): FieldError[] {
  return (['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const)
    .filter((hook) => container[hook] !== undefined)
    .map((hook) =>
      forbiddenField(`${field}.${hook}`, 'may not be set for init containers without restartPolicy=Always'),
    );
}

const COUNTS = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
] as const;

function checkProbe(field: string, probe: Probe | undefined): FieldError[] {
  if (probe === undefined) return [];
  return [
    ...checkHandler(field, probe),
    ...COUNTS.flatMap((count) => checkNotNegative(`${field}.${count}`, probe[count])),
  ];
}

/** A probe that restarts a container must not require more than one success. */
function checkOneSuccess(field: string, probe: Probe | undefined): FieldError[] {
  const { successThreshold = 1 } = probe ?? {};
  return successThreshold === 1 ? [] : [invalidValue(`${field}.successThreshold`, successThreshold, 'must be 1')];
}

const HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'];

function checkHandler(field: string, handler: Handler | undefined): FieldError[] {
  if (handler === undefined) return [];
  const { exec, httpGet, tcpSocket, grpc } = handler;
  const errors = checkOneSource(field, handler, HANDLERS, 'handler');
  if (exec !== undefined && (exec.command ?? []).length === 0) errors.push(requiredValue(`${field}.exec.command`));
  if (httpGet !== undefined) errors.push(...checkPortOrName(`${field}.httpGet.port`, httpGet.port));
  if (tcpSocket !== undefined) errors.push(...checkPortOrName(`${field}.tcpSocket.port`, tcpSocket.port));
  if (grpc !== undefined) errors.push(...checkPort(`${field}.grpc.port`, grpc.port));
  return errors;
}
