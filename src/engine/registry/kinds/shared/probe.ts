/** The schemas of probes and lifecycle hooks. */
import { int32, int64, intOrString, list, obj, oneOf, str } from '#kube/schema-dsl.ts';

export const execAction = obj({
  command: list(str(), { atomic: true }),
});

export const httpHeader = obj(
  {
    name: str(),
    value: str(),
  },
  { required: ['name', 'value'] },
);

export const httpGetAction = obj(
  {
    host: str(),
    httpHeaders: list(httpHeader, { atomic: true }),
    path: str({ default: '/' }),
    port: intOrString(),
    scheme: oneOf(['HTTP', 'HTTPS'], { default: 'HTTP' }),
  },
  { required: ['port'] },
);

export const tcpSocketAction = obj(
  {
    host: str(),
    port: intOrString(),
  },
  { required: ['port'] },
);

export const grpcAction = obj(
  {
    port: int32(),
    service: str({ default: '' }),
  },
  { required: ['port'] },
);

export const sleepAction = obj(
  {
    seconds: int64(),
  },
  { required: ['seconds'] },
);

export const containerProbeSchema = obj({
  exec: execAction,
  failureThreshold: int32({ default: 3 }),
  grpc: grpcAction,
  httpGet: httpGetAction,
  initialDelaySeconds: int32(),
  periodSeconds: int32({ default: 10 }),
  successThreshold: int32({ default: 1 }),
  tcpSocket: tcpSocketAction,
  terminationGracePeriodSeconds: int64(),
  timeoutSeconds: int32({ default: 1 }),
});

export const lifecycleHandler = obj({
  exec: execAction,
  httpGet: httpGetAction,
  sleep: sleepAction,
  tcpSocket: tcpSocketAction,
});

export const lifecycle = obj({
  postStart: lifecycleHandler,
  preStop: lifecycleHandler,
});
