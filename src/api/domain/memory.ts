import { bool, map, obj, quantity, type Infer } from '#kube/schema-dsl.ts';

export const memory = obj({
  guest: quantity({ description: 'The memory that the guest sees. Defaults to resources.requests.memory.' }),
});

export const resources = obj({
  requests: map(quantity(), { description: 'CPU and memory for the scheduler.' }),
  limits: map(quantity(), { description: 'CPU and memory for the scheduler.' }),
  overcommitGuestOverhead: bool({
    description: 'Excludes the overhead of running the guest from the memory request. Defaults to false.',
  }),
});

export type Resources = Infer<typeof resources>;
