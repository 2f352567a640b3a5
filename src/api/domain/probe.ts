/** How a guest is asked whether it lives, or is ready: as a Pod's probes, and by the guest agent. */
import { int32, intOrString, list, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

const seconds = (description: string) => int32({ minimum: 0, maximum: 86_400, description });
const count = (description: string) => int32({ minimum: 0, maximum: 10_000, description });

export const probe = obj(
  {
    exec: obj(
      { command: list(str({ maxLength: 4096 }), { maxItems: 64 }) },
      { description: 'A program that the guest agent starts in the guest; 0 is success.' },
    ),
    guestAgentPing: obj({}, { description: 'The guest agent answers.' }),
    httpGet: obj(
      {
        host: str({ maxLength: 253 }),
        httpHeaders: list(obj({ name: str({ maxLength: 256 }), value: str({ maxLength: 4096 }) }), { maxItems: 32 }),
        path: str({ maxLength: 2048 }),
        port: intOrString(),
        scheme: oneOf(['HTTP', 'HTTPS']),
      },
      { required: ['port'], description: 'An answer from 200 to 399 is success.' },
    ),
    tcpSocket: obj({ host: str({ maxLength: 253 }), port: intOrString() }, { required: ['port'] }),
    initialDelaySeconds: seconds('From the start of the guest to the first time that it is asked; 0 unless set.'),
    periodSeconds: seconds('How often it is asked; 10 unless set.'),
    timeoutSeconds: seconds('How long it may take to answer; 1 unless set.'),
    successThreshold: count('Answers in a row after a failure that make it good again; 1 unless set.'),
    failureThreshold: count('Failures in a row that count as one; 3 unless set.'),
  },
  { description: 'How the guest is asked.' },
);

export type Probe = Infer<typeof probe>;
