"""Times steps of tf_cnn_benchmarks, from a checkout of it; prints one JSON object with their seconds at the end.

    tf_step.py CHECKOUT_OF_TF_CNN_BENCHMARKS [its flags]

The benchmark prints mean speeds with one digit; its own list of step times is read instead.
"""
import json
import sys


def main():
    sys.path.insert(0, sys.argv.pop(1))
    from absl import app
    import tensorflow as tf

    import benchmark_cnn
    import tf_cnn_benchmarks

    seconds = []
    original = benchmark_cnn.get_perf_timing

    def keep_times(batch_size, step_train_times, *rest):
        seconds[:] = step_train_times
        return original(batch_size, step_train_times, *rest)

    def run(positional):
        tf_cnn_benchmarks.main(positional)
        print(json.dumps({"seconds": [float(s) for s in seconds], "version": tf.__version__}))

    benchmark_cnn.get_perf_timing = keep_times
    tf.compat.v1.disable_v2_behavior()
    app.run(run)


if __name__ == "__main__":
    main()
