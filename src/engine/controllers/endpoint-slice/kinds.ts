/** Services and EndpointSlices with the fields that their controllers use. */
import type { endpointSlice } from '#engine/registry/kinds/endpoint-slice.ts';
import type { Service } from '#engine/registry/kinds/core/service-schema.ts';
import { ENDPOINT_SLICES, SERVICES } from '#kube/cluster-kinds.ts';
import { type KubeObject, resourceAs } from '#kube/meta.ts';
import type { Infer } from '#kube/schema-dsl.ts';

export type EngineSlice = KubeObject & Infer<typeof endpointSlice>;
export type SliceEndpoint = EngineSlice['endpoints'][number];
export type SlicePort = NonNullable<EngineSlice['ports']>[number];

export const ENGINE_SERVICES = resourceAs<Service>(SERVICES);
export const ENGINE_SLICES = resourceAs<EngineSlice>(ENDPOINT_SLICES);
