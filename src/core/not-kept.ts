import type { Answer } from './record.js'

/** In place of an answer that was not kept, when nothing of it is. */
export const NOT_KEPT: Answer = Object.freeze({
  status: 200,
  statusMessage: '',
  headers: Object.freeze([]),
  body: null,
})

/** Whether nothing of the answer is kept, neither body nor headers. */
export function isNotKept({ statusMessage, headers, body }: Answer): boolean {
  return body === null && headers.length === 0 && statusMessage === ''
}
