/** What expressions of policies and webhooks may name, as Kubernetes declares it. */
import { withVariables, type Environment } from '#cel/environment.ts';
import { kubernetesEnvironment } from '#cel/kubernetes-environment.ts';
import { AUTHORIZER, RESOURCE_CHECK } from '#cel/kubernetes/authorizer.ts';
import { DYN, type CelType } from '#cel/type.ts';
import { NAMESPACE_TYPE, REQUEST_TYPE } from '#engine/admission/expressions/expression-types.ts';

export interface Declarations {
  /** Only policies with a paramKind have parameters. */
  readonly params: boolean;
  /** messageExpression and auditAnnotations go without. */
  readonly authorizer: boolean;
  /** What the object is, where a schema tells; otherwise anything. */
  readonly objectType?: CelType;
  readonly paramsType?: CelType;
  /** The policy's own variables, as one object. */
  readonly variables?: CelType;
}

export function expressionEnvironment(declared: Declarations): Environment {
  const { params, authorizer, objectType = DYN, paramsType = DYN, variables } = declared;
  return withVariables(kubernetesEnvironment, {
    object: objectType,
    oldObject: objectType,
    namespaceObject: NAMESPACE_TYPE,
    request: REQUEST_TYPE,
    ...(params ? { params: paramsType } : {}),
    ...(authorizer ? { authorizer: AUTHORIZER, 'authorizer.requestResource': RESOURCE_CHECK } : {}),
    ...(variables === undefined ? {} : { variables }),
  });
}
