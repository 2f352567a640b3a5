import { bool, map, obj, quantity, type Infer } from '#kube/schema-dsl.ts';

export const memory = obj({
  guest: quantity({ description: 'What the guest sees. resources.requests.memory stands in where it is not set.' }),
});

export const resources = obj({
  requests: map(quantity(), { description: 'cpu and memory, for the scheduler.' }),
  limits: map(quantity(), { description: 'cpu and memory, for the scheduler.' }),
  overcommitGuestOverhead: bool({
    description: 'The scheduler is not asked for what it costs to run the guest, beside its memory; false unless set.',
  }),
});

export type Memory = Infer<typeof memory>;
export type Resources = Infer<typeof resources>;
