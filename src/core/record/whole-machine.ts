export { forget } from './forget.js'
export * from './machine.js'
