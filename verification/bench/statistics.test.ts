import { expect, test } from 'vitest'
import { differenceOf, quantile, ratioOf, spreadOf } from './statistics.js'

test('the median is the middle value, or the mean of the two in the middle', () => {
  expect(spreadOf([9, 1, 5])).toEqual({ median: 5, least: 1, most: 9 })
  expect(spreadOf([1, 2, 4, 9]).median).toBe(3)
})

test('a quantile lies between the two nearest values', () => {
  expect(quantile([10], 0.99)).toBe(10)
  expect(quantile([0, 10], 0.25)).toBe(2.5)
  expect(quantile([1, 2, 3, 4, 5], 1)).toBe(5)
  expect(quantile([], 0.5)).toBeNaN()
})

test('values are sorted as numbers, and left as they were', () => {
  const values = [100, 20, 3]
  expect(spreadOf(values).median).toBe(20)
  expect(values).toEqual([100, 20, 3])
})

test('ratios are made round by round, then the median: a round that was slow for both says nothing', () => {
  expect(ratioOf([11, 110, 12], [10, 100, 10])).toEqual({ median: 1.1, least: 1.1, most: 1.2 })
  expect(differenceOf([5, 50], [4, 46])).toEqual({ median: 2.5, least: 1, most: 4 })
})

test('rounds that do not correspond are refused', () => {
  expect(() => ratioOf([1, 2], [1])).toThrow(RangeError)
})
