#include "bench/report/pseudo_terminal.h"

#include <termios.h>

namespace cnn::bench {

void keep_lines_whole(int descriptor) {
  termios settings{};
  if (tcgetattr(descriptor, &settings) != 0 || (settings.c_oflag & ONLCR) != 0) {
    return;
  }
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  static_cast<void>(tcsetattr(descriptor, TCSANOW, &settings));  // lines may mix, as without this
}

}  // namespace cnn::bench
