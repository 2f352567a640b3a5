/** Probes and lifecycle hooks: types and rules. */
import { apiType, inlined, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { type Infer, int32, int64, intOrString, list, oneOf, str } from '#kube/schema-dsl.ts';
import { checkNotNegative, checkOneSource, checkPort, checkPortOrName } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';

const execAction = apiType('core.v1.ExecAction', 'Runs a command in the container.', {
  command: optional(
    1,
    list(str(), { atomic: true }),
    'Command and its arguments. It is not run in a shell. Exit status 0 means success.',
  ),
});

const httpHeader = apiType('core.v1.HTTPHeader', 'A header of an HTTP request.', {
  name: required(1, str(), 'Name of the header.'),
  value: required(2, str(), 'Value of the header.'),
});

const httpGetAction = apiType('core.v1.HTTPGetAction', 'Sends an HTTP GET request.', {
  path: optional(1, str({ default: '/' }), 'Path of the request.'),
  port: required(2, intOrString(), 'Number or name of the port.'),
  host: optional(3, str(), 'Host to connect to. Defaults to the IP of the pod.'),
  scheme: optional(4, oneOf(['HTTP', 'HTTPS'], { default: 'HTTP' }), 'Scheme of the request: HTTP or HTTPS.'),
  httpHeaders: optional(5, list(httpHeader, { atomic: true }), 'Headers of the request.'),
});

const tcpSocketAction = apiType('core.v1.TCPSocketAction', 'Opens a TCP connection.', {
  port: required(1, intOrString(), 'Number or name of the port.'),
  host: optional(2, str(), 'Host to connect to. Defaults to the IP of the pod.'),
});

const grpcAction = apiType('core.v1.GRPCAction', 'Calls the gRPC health checking service.', {
  port: required(1, int32(), 'Port of the gRPC service.'),
  service: pointer(2, str({ default: '' }), 'Service name in the HealthCheckRequest.', { omitEmpty: false }),
});

const sleepAction = apiType('core.v1.SleepAction', 'Waits for a number of seconds.', {
  seconds: required(1, int64(), 'Seconds to wait.'),
});

export const containerProbeSchema = apiType('core.v1.Probe', 'A periodic health check of a container.', {
  ...inlined(1, 'core.v1.ProbeHandler', {
    exec: pointer(1, execAction, 'Runs a command in the container.'),
    httpGet: pointer(2, httpGetAction, 'Sends an HTTP GET request.'),
    tcpSocket: pointer(3, tcpSocketAction, 'Opens a TCP connection.'),
    grpc: pointer(4, grpcAction, 'Calls the gRPC health checking service.'),
  }),
  initialDelaySeconds: optional(2, int32(), 'Seconds between the start of the container and the first probe.'),
  timeoutSeconds: optional(3, int32({ default: 1 }), 'Seconds after which the probe times out.'),
  periodSeconds: optional(4, int32({ default: 10 }), 'Seconds between probes.'),
  successThreshold: optional(
    5,
    int32({ default: 1 }),
    'Consecutive successes after which a failed probe counts as successful again.',
  ),
  failureThreshold: optional(6, int32({ default: 3 }), 'Consecutive failures after which the probe counts as failed.'),
  terminationGracePeriodSeconds: pointer(7, int64(), 'Seconds that the pod has to terminate after the probe fails.'),
});

const lifecycleHandler = apiType(
  'core.v1.LifecycleHandler',
  'An action to run on a lifecycle event. Exactly one must be set.',
  {
    exec: pointer(1, execAction, 'Runs a command in the container.'),
    httpGet: pointer(2, httpGetAction, 'Sends an HTTP GET request.'),
    tcpSocket: pointer(3, tcpSocketAction, 'Opens a TCP connection.'),
    sleep: pointer(4, sleepAction, 'Waits for a number of seconds.'),
  },
);

export const lifecycle = apiType('core.v1.Lifecycle', "Actions to run in response to a container's lifecycle events.", {
  postStart: pointer(1, lifecycleHandler, 'Action to run immediately after the container starts.'),
  preStop: pointer(2, lifecycleHandler, 'Action to run immediately before the container stops.'),
});

type Probe = Infer<typeof containerProbeSchema>;
type Handler = Infer<typeof lifecycleHandler> & Pick<Probe, 'grpc'>;

/** The fields of a container that this module validates. */
interface Probed {
  readonly lifecycle?: Infer<typeof lifecycle>;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly startupProbe?: Probe;
}

/** Checks the probes and hooks of containers that keep running. */
export function checkHooks(field: string, container: Probed): FieldError[] {
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
export function forbidHooks(field: string, container: Probed): FieldError[] {
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
