/** The variables of policy and webhook expressions, as Kubernetes declares them. */
import { withVariables, type Environment } from '#cel/environment.ts';
import { kubernetesEnvironment } from '#cel/kubernetes-environment.ts';
import { AUTHORIZER, RESOURCE_CHECK } from '#cel/kubernetes/authorizer.ts';
import { DYN, type CelType } from '#cel/type.ts';
import { NAMESPACE_TYPE, REQUEST_TYPE } from '#engine/expressions/expression-types.ts';

export interface Declarations {
  /** True if there are parameters; only policies with a paramKind have them. */
  readonly params: boolean;
  /** True if there is an authorizer; messageExpression and auditAnnotations have none. */
  readonly authorizer: boolean;
  /** Type of the object if a schema is known; otherwise dyn. */
  readonly objectType?: CelType;
  readonly paramsType?: CelType;
  /** The policy's variables, as one object. */
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
