/**
 * @typedef {{ readonly id: string, readonly name: string, readonly apiKey: string }} Merchant
 * @typedef {{ readonly path: string, readonly title: string, readonly sample: Record<string, unknown> }} Operation
 */

/**
 * The merchants of the example; their API keys are public.
 *
 * @type {readonly Merchant[]}
 */
export const merchants = [
  { id: 'mer_acme', name: 'Acme', apiKey: 'demo_acme' },
  { id: 'mer_globex', name: 'Globex', apiKey: 'demo_globex' },
]

/**
 * All operations, each with a body that works right now.
 *
 * @param {Merchant} merchant
 * @returns {Promise<readonly Operation[]>}
 */
export function listOperations(merchant) {
  return getJson('/operations', merchant)
}

/**
 * How often the operation of a name had its effect.
 *
 * @param {Merchant} merchant
 * @param {string} name
 * @returns {Promise<number>}
 */
export async function countRuns(merchant, name) {
  const { runs } = await getJson(`/demo/operations/${name}`, merchant)
  return runs
}

/**
 * How the handlers have their effect once: they look in their books, or it commits with the record of its key.
 *
 * @param {Merchant} merchant
 * @returns {Promise<'looks' | 'transaction'>}
 */
export async function handlerKind(merchant) {
  const { handler } = await getJson('/demo/handler', merchant)
  return handler
}

/** @param {Merchant} merchant */
export function authorization({ apiKey }) {
  return `Bearer ${apiKey}`
}

/**
 * @param {string} path
 * @param {Merchant} merchant
 */
async function getJson(path, merchant) {
  const response = await fetch(path, { headers: { Authorization: authorization(merchant) }, cache: 'no-store' })
  if (!response.ok) throw new Error(`The service answered ${response.status} to ${path}.`)
  return response.json()
}
