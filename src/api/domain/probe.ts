/** Schema of liveness and readiness probes: those of a Pod, and probes by the guest agent. */
import { int32, intOrString, list, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

const seconds = (description: string) => int32({ minimum: 0, maximum: 86_400, description });
const count = (description: string) => int32({ minimum: 0, maximum: 10_000, description });

export const probeSchema = obj(
  {
    exec: obj(
      { command: list(str({ maxLength: 4096 }), { maxItems: 64 }) },
      { description: 'The guest agent runs a program in the guest. Exit code 0 is success.' },
    ),
    guestAgentPing: obj({}, { description: 'Succeeds if the guest agent responds.' }),
    httpGet: obj(
      {
        host: str({ maxLength: 253 }),
        httpHeaders: list(obj({ name: str({ maxLength: 256 }), value: str({ maxLength: 4096 }) }), { maxItems: 32 }),
        path: str({ maxLength: 2048 }),
        port: intOrString(),
        scheme: oneOf(['HTTP', 'HTTPS']),
      },
      { required: ['port'], description: 'A response code from 200 to 399 is success.' },
    ),
    tcpSocket: obj({ host: str({ maxLength: 253 }), port: intOrString() }, { required: ['port'] }),
    initialDelaySeconds: seconds('Delay between the start of the guest and the first probe. Defaults to 0.'),
    periodSeconds: seconds('Interval between probes. Defaults to 10.'),
    timeoutSeconds: seconds('Timeout of one probe. Defaults to 1.'),
    successThreshold: count('Consecutive successes after a failure for the probe to succeed. Defaults to 1.'),
    failureThreshold: count('Consecutive failures for the probe to fail. Defaults to 3.'),
  },
  { description: 'A probe of the guest.' },
);

export type Probe = Infer<typeof probeSchema>;
