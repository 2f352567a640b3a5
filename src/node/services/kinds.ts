/** Services and EndpointSlices with the fields that nodes use. */
import { ENDPOINT_SLICES, SERVICES } from '#kube/cluster-kinds.ts';
import { type KubeObject, resourceAs } from '#kube/meta.ts';

export interface RoutedService extends KubeObject {
  spec?: {
    type?: string;
    clusterIP?: string;
    clusterIPs?: readonly string[];
    ports?: readonly {
      readonly name?: string;
      readonly protocol?: string;
      readonly port: number;
      readonly nodePort?: number;
    }[];
    sessionAffinity?: string;
    externalTrafficPolicy?: string;
    internalTrafficPolicy?: string;
  };
  status?: {
    loadBalancer?: { ingress?: readonly { readonly ip?: string; readonly ipMode?: string }[] };
  };
}

export interface RoutedSlice extends KubeObject {
  addressType?: string;
  endpoints?: readonly {
    readonly addresses: readonly string[];
    readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean };
    readonly hostname?: string;
    readonly nodeName?: string;
  }[];
  ports?: readonly { readonly name?: string; readonly protocol?: string; readonly port?: number }[];
}

export const ROUTED_SERVICES = resourceAs<RoutedService>(SERVICES);
export const ROUTED_SLICES = resourceAs<RoutedSlice>(ENDPOINT_SLICES);
