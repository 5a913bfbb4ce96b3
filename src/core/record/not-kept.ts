import type { Answer } from './record.js'

/** In place of an answer that was not kept, when nothing of it is. */
export const NOT_KEPT: Answer = Object.freeze({
  status: 200,
  statusMessage: '',
  headers: Object.freeze([]),
  body: null,
})

/** Whether nothing of the answer is kept, neither body nor headers. */
export function isNotKept(answer: Answer): boolean {
  // The body last: a store may copy it for each reader.
  return answer.statusMessage === '' && answer.headers.length === 0 && answer.body === null
}
